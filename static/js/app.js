/* The script behind every page. Everything readable works without it. */
import "./theme.js";
import "./ages.js";
import "./dialogs.js";
