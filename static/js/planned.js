/* Idle, Planned: countdowns tick. */
import { startCountdowns } from "./countdown.js";

startCountdowns();
