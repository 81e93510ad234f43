"""A table with native ids goes over to snowflake ids and back by the page's migration, and prints the ids of each kind."""

import os

import django
from django.core.management import call_command

from migrating import make_initial

make_initial()
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
django.setup()
from events.models import Event  # noqa: E402


def migrate(*name):  # all, if none is named
    call_command("migrate", "events", *name, verbosity=0)


migrate("0001")
native = Event.objects.bulk_create([Event(name="native 1"), Event(name="native 2")])
assert [event.pk for event in native] == [1, 2], native
migrate()
given = [Event.objects.create(name="given 1")]
given += Event.objects.bulk_create([Event(name="given 2"), Event(name="given 3")])
ids = [event.pk for event in given]
assert min(ids) > 10**15 and ids == sorted(ids), ids
assert [Event.objects.get(name=event.name).pk for event in given] == ids
migrate("0001")
back = Event.objects.create(name="back")
assert back.pk > max(ids), "a sequence again, above all that was given"
for id in [*ids, back.pk]:
    print("id", id)
