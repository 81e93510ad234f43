"""Uses the page's model in the ways that are common, and prints the id of each row: `check.py postgres|mariadb|mysql`."""

import os
import runpy
import sys
from pathlib import Path

import django
from django.core.management import call_command
from django.db import connection, transaction

from migrating import make_initial, make_migrations

SERVER = sys.argv[1]
KNOWS_BULK_IDS = SERVER != "mysql"


def id_of(name):
    """What the database says."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM events_event WHERE name = %s", [name])
        return cursor.fetchone()[0]


def use_as_the_page_does():
    used = runpy.run_path("use.py")
    assert used["event"].pk == id_of("one")
    wanted = [id_of("two"), id_of("three")] if KNOWS_BULK_IDS else [None, None]
    assert [event.pk for event in used["events"]] == wanted, used["events"]


def create_in_other_ways(Event):
    saved = Event(name="saved")
    saved.save()
    assert saved.pk == id_of("saved")
    got, created = Event.objects.get_or_create(name="got or created")
    assert created and got.pk == id_of("got or created")
    got, created = Event.objects.get_or_create(name="got or created")
    assert not created
    updated, created = Event.objects.update_or_create(name="updated or created")
    assert created and updated.pk == id_of("updated or created")
    Event(pk=9_000_000_000, name="of its own").save()
    assert id_of("of its own") == 9_000_000_000
    call_command("loaddata", "fixture.json", verbosity=0)
    assert id_of("loaded") == 9_000_000_001


def create_many(Event):
    many = Event.objects.bulk_create(Event(name=f"many {n}") for n in range(500))
    ids = [id_of(f"many {n}") for n in range(500)]
    assert ids == sorted(ids), "in the order of the rows"
    assert [event.pk for event in many] == (ids if KNOWS_BULK_IDS else [None] * 500)
    batches = Event.objects.bulk_create([Event(name=f"batch {n}") for n in range(10)], batch_size=3)
    if KNOWS_BULK_IDS:
        assert [event.pk for event in batches] == [id_of(f"batch {n}") for n in range(10)]


def create_many_of_which_some_are_there(Event):
    before = id_of("one")
    Event.objects.bulk_create([Event(name="one"), Event(name="ignored")], ignore_conflicts=True)
    options = {"update_conflicts": True, "update_fields": ["name"]}
    if SERVER == "postgres":
        options["unique_fields"] = ["name"]
    events = Event.objects.bulk_create([Event(name="one"), Event(name="upserted")], **options)
    assert id_of("one") == before
    assert id_of("ignored") and id_of("upserted")
    if KNOWS_BULK_IDS:
        assert [event.pk for event in events] == [before, id_of("upserted")], events


def roll_back(Event):
    try:
        with transaction.atomic():
            Event.objects.create(name="rolled back")
            raise ValueError
    except ValueError:
        pass
    with transaction.atomic():
        outer = Event.objects.create(name="outer")
        try:
            with transaction.atomic():
                Event.objects.create(name="to the savepoint")
                raise ValueError
        except ValueError:
            pass
        after = Event.objects.create(name="after the savepoint")
    assert not Event.objects.filter(name__in=["rolled back", "to the savepoint"]).exists()
    assert (outer.pk, after.pk) == (id_of("outer"), id_of("after the savepoint"))


def relate(Event):
    from events.models import Label

    label = Label.objects.create(name="green")
    events = list(Event.objects.all()[:3])
    label.events.add(*events)
    label.events.add(*events)
    label.events.set(events[:2])
    assert {event.pk for event in label.events.all()} == {event.pk for event in events[:2]}
    if SERVER != "postgres":
        for name in ["events_label", "events_label_events"]:
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT id FROM {name}")
                show(row[0] for row in cursor.fetchall())


def show(ids):
    for id in ids:
        if id not in [9_000_000_000, 9_000_000_001]:
            print("id", id)


def main():
    os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
    make_initial()
    with open("events/models.py", "a") as models:
        models.write(Path("labels.py.more").read_text())
    make_migrations()
    django.setup()
    call_command("migrate", verbosity=0)
    from events.models import Event

    use_as_the_page_does()
    create_in_other_ways(Event)
    create_many(Event)
    create_many_of_which_some_are_there(Event)
    roll_back(Event)
    relate(Event)
    show(Event.objects.values_list("pk", flat=True))


main()
