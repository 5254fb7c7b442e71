/* Runs before the first paint: a chosen theme must not flash, and the server should know the reader's time zone. */
try {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  /* Storage is blocked: the system's theme stays. */
}
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.includes(`tz=${zone}`)) {
  document.cookie = `tz=${zone}; path=/; max-age=31536000; samesite=lax`;
}
