"""Migrations as they come to be: the first is made of the model, the page's, if it has one, is written behind it."""

import subprocess
import sys
from pathlib import Path

PAGES = Path("events/migrations/0002_snowflake.py")


def make_migrations():
    make = [sys.executable, "manage.py", "makemigrations", "events", "--verbosity=0"]
    subprocess.run(make, check=True)


def make_initial():
    aside = Path("aside.py")
    if PAGES.exists():
        PAGES.rename(aside)
    make_migrations()
    if aside.exists():
        aside.rename(PAGES)


if __name__ == "__main__":
    make_initial()
