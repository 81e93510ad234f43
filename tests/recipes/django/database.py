"""PostgreSQL; the page prints another one for MySQL."""

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "shop_1",
        "USER": "app",
        "HOST": "127.0.0.1",
        "PORT": "5432",
    }
}
