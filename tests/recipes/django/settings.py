"""What `startproject` writes, as far as the recipe needs it."""

from database import DATABASES  # noqa: F401

SECRET_KEY = "recipes"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "events"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
