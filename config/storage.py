"""Names of static files with a hash of their content."""

from __future__ import annotations

from django.contrib.staticfiles.storage import HashedFilesMixin
from whitenoise.storage import CompressedManifestStaticFilesStorage

_ANY_FILE, _IMPORT_PATTERNS = HashedFilesMixin._js_module_import_aggregation_patterns  # type: ignore[attr-defined]  # noqa: SLF001


class HashedStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """A module of ours and those that it imports come from the same release: imports are rewritten to hashed names as well.

    Only in our own files: those of packages hold lines that merely look like imports.
    """

    support_js_module_import_aggregation = True
    _js_module_import_aggregation_patterns = ("js/*.js", _IMPORT_PATTERNS)
