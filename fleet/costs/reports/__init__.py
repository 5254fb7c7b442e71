"""The month of money as a mail to those who answer for it (docs/exports.md)."""
