"""Uses the page's model in the ways that are common, and prints the id of each row: `check.py postgres|mariadb|mysql`."""

import runpy
import sys

from sqlalchemy import BigInteger, ForeignKey, event, insert, select
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.orm import Mapped, Session, mapped_column, relationship

from engine import engine
from models import Base, Event

SERVER = sys.argv[1]
SAMPLE = 500


class Note(Base):
    """Its table comes while the program runs; its rows need the ids of others in the same flush."""

    __tablename__ = "event_note"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    event_id: Mapped[int] = mapped_column(ForeignKey(Event.id))
    event: Mapped[Event] = relationship()


def ids_by_name(session):
    return dict(session.execute(select(Event.name, Event.id)).all())


def use_as_the_page_does():
    used = runpy.run_path("use.py")
    with Session(engine) as session:
        rows = ids_by_name(session)
        for one in [used["event"], *used["events"]]:
            session.add(one)
            assert one.id == rows[one.name]


def flush_many():
    """One statement where the page says so."""
    statements = []
    event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with Session(engine) as session:
        many = [Event(name=f"many {n}") for n in range(SAMPLE)]
        session.add_all(many)
        session.flush()
        inserts = [text for text in statements if text.startswith("INSERT")]
        assert len(inserts) == (SAMPLE if SERVER == "mysql" else 1), len(inserts)
        rows = ids_by_name(session)
        assert [one.id for one in many] == [rows[one.name] for one in many]
        session.commit()


def insert_in_bulk():
    values = [{"name": f"bulk {n}"} for n in range(SAMPLE)]
    with Session(engine) as session:
        if SERVER == "mysql":
            session.execute(insert(Event), values)
        else:
            statement = insert(Event).returning(Event.id, sort_by_parameter_order=True)
            ids = session.scalars(statement, values).all()
            rows = ids_by_name(session)
            assert ids == [rows[value["name"]] for value in values]
        session.commit()
    with engine.begin() as connection:
        result = connection.execute(insert(Event).values(name="core"))
        (key,) = result.inserted_primary_key
        assert key == connection.scalar(select(Event.id).where(Event.name == "core"))


def upsert():
    with Session(engine) as session:
        before = ids_by_name(session)["one"]
        if SERVER == "postgres":
            statement = postgresql.insert(Event).values([{"name": "one"}, {"name": "upserted"}])
            update = statement.on_conflict_do_update(index_elements=["name"], set_={"name": statement.excluded.name})
            ids = session.scalars(update.returning(Event.id)).all()
            ignore = postgresql.insert(Event).values(name="one").on_conflict_do_nothing()
        else:
            statement = mysql.insert(Event).values([{"name": "one"}, {"name": "upserted"}])
            update = statement.on_duplicate_key_update(name=statement.inserted.name)
            if SERVER == "mariadb":
                ids = session.scalars(update.returning(Event.id)).all()
            else:
                session.execute(update)
                ids = None
            ignore = insert(Event).values(name="one").prefix_with("IGNORE")
        session.execute(ignore)
        rows = ids_by_name(session)
        assert rows["one"] == before
        if ids is not None:
            assert ids == [before, rows["upserted"]], ids
        session.commit()


def roll_back():
    with Session(engine) as session:
        session.add(Event(name="rolled back"))
        session.flush()
        session.rollback()
        outer = Event(name="outer")
        session.add(outer)
        session.flush()
        with session.begin_nested() as savepoint:
            session.add(Event(name="to the savepoint"))
            session.flush()
            savepoint.rollback()
        after = Event(name="after the savepoint")
        session.add(after)
        session.commit()
        rows = ids_by_name(session)
        assert "rolled back" not in rows and "to the savepoint" not in rows
        assert (outer.id, after.id) == (rows["outer"], rows["after the savepoint"])


def relate():
    with Session(engine) as session:
        notes = [Note(event=Event(name=f"noted {n}")) for n in range(3)]
        session.add_all(notes)
        session.commit()
        rows = ids_by_name(session)
        for n, note in enumerate(notes):
            assert note.event_id == rows[f"noted {n}"]
            if SERVER != "postgres":
                print("id", note.id)


def main():
    Base.metadata.create_all(engine)
    use_as_the_page_does()
    flush_many()
    insert_in_bulk()
    upsert()
    roll_back()
    relate()
    with Session(engine) as session:
        for id in ids_by_name(session).values():
            print("id", id)


main()
