"""Settings of every Rackrent process. What differs between installations comes from the environment (docs/operate.md)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from config.env import env_bool, env_int, env_list, env_rate, env_secret, env_str
from config.installation import Installation
from config.reach import own_hosts, own_url

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"

INSTALLATION = Installation(BASE_DIR)
DATABASE_URL = env_secret("DATABASE_URL")
REDIS_URL = env_secret("REDIS_URL")
# A machine that brings neither has its own PostgreSQL and Valkey (config/embedded), and keys generated at the first start.
EMBEDDED_DATABASE, EMBEDDED_BROKER = not DATABASE_URL, not REDIS_URL

DEBUG = env_bool("DEBUG", False)
SECRET_KEY = env_secret("SECRET_KEY") or (INSTALLATION.secret_key if EMBEDDED_DATABASE else "")
# Newest first: the first key encrypts, all of them decrypt (fleet/inventory/credentials.py).
CREDENTIAL_KEYS = [
    key.strip()
    for key in (env_secret("CREDENTIAL_KEYS") or (INSTALLATION.credential_keys if EMBEDDED_DATABASE else "")).split(",")
    if key.strip()
]

RACKRENT_HOST = env_str("RACKRENT_HOST", "127.0.0.1")
RACKRENT_PORT = env_int("RACKRENT_PORT", 8400, low=1, high=65535)
# Where the other processes of this installation reach the web process.
WEB_URL = env_str("WEB_URL", own_url(bind_host=RACKRENT_HOST, port=RACKRENT_PORT)).rstrip("/")
# Where people and rented machines reach it; "" = only this machine does.
PUBLIC_URL = env_str("PUBLIC_URL").rstrip("/")
DEADMAN_URL = env_secret("DEADMAN_URL")
# Opens /metrics; "" = closed to everybody.
METRICS_TOKEN = env_secret("METRICS_TOKEN")
# Of the first start only, which makes the first admin.
RACKRENT_ADMIN_PASSWORD = env_secret("RACKRENT_ADMIN_PASSWORD")
# Where callers reach the gateways before jobs that serve; 0 = there are none. GATEWAY_URL: how they name it, where a proxy stands before it.
GATEWAY_HOST = env_str("GATEWAY_HOST", "127.0.0.1")
GATEWAY_PORT = env_int("GATEWAY_PORT", 0, low=0, high=65535)
GATEWAY_URL = env_str("GATEWAY_URL", own_url(bind_host=GATEWAY_HOST, port=GATEWAY_PORT)).rstrip("/")
WORKER_CONCURRENCY = env_int("WORKER_CONCURRENCY", 2, low=1, high=64)
OUTSIDE_CONCURRENCY = env_int("OUTSIDE_CONCURRENCY", 6, low=5, high=64)
# Pages and calls of the API that one web process works on; each holds a database connection. Others wait.
REQUESTS_AT_ONCE = env_int("REQUESTS_AT_ONCE", 16, low=1, high=1_000)
# Reading providers: how long one listing may take, how many are read at once, and how many complete ones must lack a machine before it is gone.
# Of one file that is sent for a job.
JOB_UPLOAD_CAP_BYTES = env_int("JOB_UPLOAD_CAP_MIB", 64, low=1, high=512) << 20
# Of one machine's log of one job, compressed; beyond it the middle goes.
JOB_LOG_CAP_BYTES = env_int("JOB_LOG_CAP_MIB", 64, low=1, high=4096) << 20
POLL_TIMEOUT_SECONDS = env_int("POLL_TIMEOUT_SECONDS", 60, low=10, high=500)
POLLS_AT_ONCE = env_int("POLLS_AT_ONCE", max(2, OUTSIDE_CONCURRENCY // 3), low=2)
# A third for readings, of which an account has one, and a third for operations, of which an account has half; the rest is for messages of alerts.
OPERATIONS_AT_ONCE = max(2, OUTSIDE_CONCURRENCY // 3)
CHANNELS_AT_ONCE = max(1, OUTSIDE_CONCURRENCY - OPERATIONS_AT_ONCE - POLLS_AT_ONCE)
SOURCES_AT_ONCE = env_int("SOURCES_AT_ONCE", max(1, WORKER_CONCURRENCY - 1), low=1)
LISTINGS_UNTIL_GONE = env_int("LISTINGS_UNTIL_GONE", 3, low=1, high=50)
# How long readings are kept: as they came (two days at least, because that late ones are accepted), in 5 minutes, in 1 hour (13 months).
# Whether agents of fresh machines are asked to test them, once.
ACCEPT_FRESH_MACHINES = env_bool("ACCEPT_FRESH_MACHINES", True)
RAW_RETENTION_DAYS = env_int("RAW_RETENTION_DAYS", 2, low=2, high=366)
# 0: samples are not packed when their day is dropped.
RAW_HISTORY_DAYS = env_int("RAW_HISTORY_DAYS", 0, low=0, high=3_660)
if 0 < RAW_HISTORY_DAYS <= RAW_RETENTION_DAYS:
    raise ImproperlyConfigured(
        f"RAW_HISTORY_DAYS is {RAW_HISTORY_DAYS}; write 0, or more days than RAW_RETENTION_DAYS ({RAW_RETENTION_DAYS})."
    )
ROLLUP_5MIN_RETENTION_DAYS = env_int("ROLLUP_5MIN_RETENTION_DAYS", 90, low=7, high=3_660)
ROLLUP_1H_RETENTION_DAYS = env_int("ROLLUP_1H_RETENTION_DAYS", 396, low=31, high=3_660)
# Which engine keeps readings (fleet/telemetry/store): postgresql, or prometheus for any store with remote write and PromQL, at these addresses.
TELEMETRY_STORE = env_str("TELEMETRY_STORE", "postgresql") or "postgresql"
TELEMETRY_WRITE_URL, TELEMETRY_READ_URL = env_str("TELEMETRY_WRITE_URL"), env_str("TELEMETRY_READ_URL")
TELEMETRY_TENANT = env_str("TELEMETRY_TENANT")
TELEMETRY_BEARER_TOKEN = env_secret("TELEMETRY_BEARER_TOKEN")
TELEMETRY_USER, TELEMETRY_PASSWORD = env_str("TELEMETRY_USER"), env_secret("TELEMETRY_PASSWORD")
# Networks of the operator's own, as in 10.0.0.0/8, that addresses typed by a team may reach; public ones always may (fleet/guard.py).
ALLOWED_NETWORKS = env_list("ALLOWED_NETWORKS")
# The real agent on this machine, as one of the first team's.
LOCAL_AGENT = env_bool("LOCAL_AGENT", True)
# A fleet that is not there, to look at; never beside real data.
SANDBOX = EMBEDDED_DATABASE and env_bool("SANDBOX", True)
ALLOWED_HOSTS = env_list("ALLOWED_HOSTS") or own_hosts(public_url=PUBLIC_URL, bind_host=RACKRENT_HOST)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL else []
# Whether requests come through HTTPS; everything that needs it follows from PUBLIC_URL.
USES_HTTPS = PUBLIC_URL.startswith("https://")

INSTALLED_APPS = [
    "config",
    "fleet",
    "planner",
    "jobs",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "django.forms",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "axes",
    "channels",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "fleet.teams.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "fleet.pages.middleware.TimeZoneMiddleware",
    "fleet.teams.middleware.LanguageMiddleware",
    "fleet.teams.middleware.TeamMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "fleet.teams.context.page_frame",
            ],
            "libraries": {"environments": "fleet.inventory.environments.tags"},
            "builtins": ["django.templatetags.i18n", "django.templatetags.static", "fleet.templatetags.rackrent"],
        },
    }
]


FORM_RENDERER = "config.forms.Renderer"


def database(url: str) -> dict[str, Any]:
    """Django's description of a PostgreSQL address, read by libpq itself so that every form it knows works."""
    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except ProgrammingError:
        raise ImproperlyConfigured(
            "DATABASE_URL is no PostgreSQL address; write postgresql://user:password@host/name."
        ) from None
    named = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    settings: dict[str, Any] = {named[key]: parts.pop(key) for key in list(parts) if key in named}
    options: dict[str, Any] = dict(parts)
    if pool_size := env_int("DATABASE_POOL_SIZE", 0, low=0, high=200):
        options["pool"] = {"min_size": 1, "max_size": pool_size}
        # A connection that a restart of the server broke is noticed when it is taken, not when a page fails.
        settings["CONN_HEALTH_CHECKS"] = True
    return {"ENGINE": "django.db.backends.postgresql", "OPTIONS": options, **settings}


if EMBEDDED_DATABASE:
    DATABASE_URL = INSTALLATION.postgres.url
CELERY_BROKER_URL = env_secret("CELERY_BROKER_URL", REDIS_URL)
if EMBEDDED_BROKER:
    REDIS_URL, CELERY_BROKER_URL = INSTALLATION.valkey.url, INSTALLATION.valkey.celery_url
DATABASES = {"default": database(DATABASE_URL)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_timeout": 5, "socket_connect_timeout": 3},
    }
}
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
}

CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 600
CELERY_TASK_SOFT_TIME_LIMIT = 540
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_keepalive": True}
CELERY_BEAT_SCHEDULER = "config.pulse:PulsingScheduler"
CELERY_TIMEZONE = "UTC"

AUTH_USER_MODEL = "fleet.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "fleet.teams.backends.EmailBackend",
]
# Sign-in with an OpenID provider, where OIDC_ISSUER is set; its addresses are read from its discovery document.
OIDC_ISSUER = env_str("OIDC_ISSUER")
OIDC_RP_CLIENT_ID = env_str("OIDC_CLIENT_ID")
OIDC_RP_CLIENT_SECRET = env_secret("OIDC_CLIENT_SECRET")
OIDC_RP_SIGN_ALGO = env_str("OIDC_SIGN_ALGORITHM", "RS256")
OIDC_RP_SCOPES = env_str("OIDC_SCOPES", "openid email profile")
OIDC_LABEL = env_str("OIDC_LABEL")
OIDC_CREATE_USER = env_bool("OIDC_CREATE_USERS", False)
# Groups of the provider that give roles here: OIDC_TEAM_ROLES=gpu-admins=lab:admin,gpu-users=lab:viewer
OIDC_TEAM_CLAIM = env_str("OIDC_TEAM_CLAIM", "groups")
OIDC_TEAM_ROLES = env_list("OIDC_TEAM_ROLES")
OIDC_TIMEOUT = 10
OIDC_USE_PKCE = True
if OIDC_ISSUER:
    AUTHENTICATION_BACKENDS.append("fleet.teams.oidc.OpenIDBackend")

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "fleet.teams.addresses.client_ip"
AXES_LOCKOUT_CALLABLE = "fleet.teams.views.errors.locked_out"
# The page says when the lock ends; further tries must not move that moment.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
# Plotly's own copy of plotly.min.js, out of the installed package.
PLOTLY_DIR = Path(find_spec("plotly").origin or "").parent / "package_data"  # type: ignore[union-attr]
STATICFILES_DIRS: list[Any] = [BASE_DIR / "static", ("plotly", PLOTLY_DIR)]
# Names with a hash of the content, cached for good; `manage.py up` and the release step of the Procfile collect them.
HASHED_STATIC = env_bool("HASHED_STATIC", not DEBUG)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "config.storage.HashedStorage"
        if HASHED_STATIC
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = not HASHED_STATIC
WHITENOISE_ALLOW_ALL_ORIGINS = False

SESSION_ENGINE = "fleet.teams.sessions"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = USES_HTTPS
SECURE_SSL_REDIRECT = False
SECURE_HSTS_SECONDS = 31_536_000 if USES_HTTPS else 0
# Behind a reverse proxy of the operator's: its X-Forwarded-* headers are believed, when they come from TRUSTED_PROXIES.
BEHIND_PROXY = env_bool("BEHIND_PROXY", False)
TRUSTED_PROXIES = env_list("TRUSTED_PROXIES", "127.0.0.1,::1")
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None
# Subdomains and preload lists are the domain owner's to promise; the proxy in front redirects to HTTPS (docs/operate.md).
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W008", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Styles stay open to attributes (`style="--w:53%"` draws bars, and Plotly writes its own); scripts are files of ours only.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF, "'unsafe-inline'"],
        "img-src": [SELF, "data:", "blob:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "fleet.rest.schema.Schema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    # The first one answers 401 for all of them.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "fleet.teams.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["fleet.teams.permissions.HasRole"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "fleet.rest.pagination.KeysetPagination",
    "DEFAULT_THROTTLE_CLASSES": [f"fleet.teams.throttles.{name}Throttle" for name in ("Token", "User", "Anonymous")],
    "DEFAULT_THROTTLE_RATES": {
        "token": env_rate("API_RATE_TOKEN", "600/minute"),
        "user": env_rate("API_RATE_USER", "600/minute"),
        "anonymous": env_rate("API_RATE_ANONYMOUS", "60/minute"),
        "series": env_rate("API_RATE_SERIES", "120/minute"),
        "write": env_rate("API_RATE_WRITE", "60/minute"),
    },
    # OPTIONS would describe views in a second way; the schema is the one.
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "fleet.rest.errors.answer_error",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Rackrent API",
    "DESCRIPTION": "What a team rents and what it does, over HTTP. Guide: docs/api.md.",
    "VERSION": "v1",
    "LICENSE": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "InstanceState": "fleet.inventory.api.machines.INSTANCE_STATES",
        "Billing": "fleet.inventory.api.machines.BILLINGS",
        "Market": "fleet.inventory.api.machines.MARKETS",
        "ListedMarket": "fleet.inventory.offers.models.MARKET_CHOICES",
        "Tenancy": "fleet.inventory.api.machines.TENANCIES",
        "GpuState": "fleet.telemetry.api.latest.GPU_STATES",
        "CatalogueGpu": "planner.web.inputs.GPU_CHOICES",
        "ScrapeInterval": "fleet.telemetry.api.targets.INTERVALS",
        "SourceInterval": "fleet.telemetry.api.sources.INTERVALS",
        "ScrapeKind": "fleet.telemetry.models.ScrapeKind",
        "HoldKind": "fleet.inventory.models.HoldKind",
        "Act": "fleet.inventory.api.operation_bodies.ACTS",
        "OperationKind": "fleet.inventory.operations.models.OperationKind",
        "OperationState": "fleet.inventory.operations.models.OperationState",
        "Role": "fleet.teams.models.Role",
        "Scope": "fleet.teams.models.Scope",
        "ChargeKind": "fleet.costs.charges.models.KIND_CHOICES",
        "AlertState": "fleet.alerts.api.alerts.STATES",
        "AlertSeverity": "fleet.alerts.models.Severity",
        "AlertEventKind": "fleet.alerts.models.AlertEventKind",
        "ChannelKind": "fleet.alerts.api.channels.KINDS",
        "DeliveryState": "fleet.alerts.channels.models.DeliveryState",
        "AlertQuiet": "fleet.alerts.models.Quiet",
        "JobKind": "jobs.book.models.JobKind",
        "JobState": "jobs.book.models.JobState",
        "WhenDone": "jobs.book.models.WhenDone",
        "MachineSplitMode": "fleet.costs.attribution.models.SplitMode",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "fleet.rest.schema.say_what_answers_hold",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    # Closed groups: with 150 rows or more, Swagger UI holds only those near the window, and a browser's own search finds no others.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "defaultModelsExpandDepth": 0, "docExpansion": "none", "filter": True},
}

EMAIL_HOST = env_str("EMAIL_HOST")
# Without a mail server, what would be sent is written to the log.
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'console'}.EmailBackend"
EMAIL_PORT = env_int("EMAIL_PORT", 25)
EMAIL_HOST_USER = env_str("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env_secret("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS", False)
DEFAULT_FROM_EMAIL = env_str("DEFAULT_FROM_EMAIL", "rackrent@localhost")
EMAIL_USE_SSL = env_bool("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = 20
SERVER_EMAIL = DEFAULT_FROM_EMAIL

# To stderr, which `up` or the operator's supervisor collects.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "filters": {"no_traceback": {"()": "config.logs.WithoutTraceback"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        # Django's own handlers speak up under DEBUG only; a page that is not found is no news.
        "django": {"handlers": [], "level": "INFO"},
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"filters": ["no_traceback"]},
        # HTTP clients log whole addresses, and some of ours hold a secret.
        "httpx": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
    },
}
