"""Money as files for other programs: FOCUS, plain CSV, Parquet (docs/exports.md)."""
