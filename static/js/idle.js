/* Idle: countdowns tick, and the page is refreshed while it is looked at. */
import { keepAnswers } from "./answering.js";
import { startCountdowns } from "./countdown.js";
import { startPulse } from "./live.js";

keepAnswers();
startCountdowns();
startPulse();
