// Times, numbers and sizes as people read them.
import { h } from "./dom.js";

const DAY = 86_400_000;
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [
  ["year", 365 * DAY],
  ["month", 30 * DAY],
  ["day", DAY],
  ["hour", 3_600_000],
  ["minute", 60_000],
];
const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const momentFormat = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});
const numberFormat = new Intl.NumberFormat("en");

export const number = (value) => numberFormat.format(value ?? 0);
export const day = (text) => dayFormat.format(new Date(text));
export const moment = (text) => momentFormat.format(new Date(text));
export const plural = (count, noun, many = `${noun}s`) => `${number(count)} ${count === 1 ? noun : many}`;
export const percent = (share) => `${Math.round(share * 100)} %`;

export function ago(text) {
  const passed = new Date(text) - Date.now();
  const [unit, size] = STEPS.find(([, step]) => Math.abs(passed) >= step) ?? ["second", 1000];
  return Math.abs(passed) < 45_000 ? "just now" : relative.format(Math.round(passed / size), unit);
}

// A time that tells how long ago it is, and the exact moment when pointed at.
export function when(text) {
  return text ? h("time", { datetime: text, title: moment(text) }, ago(text)) : "";
}

export function seconds(value) {
  if (value < 0.0005) return "0 ms";
  return value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(value < 10 ? 1 : 0)} s`;
}

export function bytes(value) {
  const units = ["B", "KB", "MB", "GB"];
  let size = value,
    step = 0;
  for (; size >= 1000 && step < units.length - 1; step += 1) size /= 1000;
  return `${size.toFixed(size < 10 && step ? 1 : 0)} ${units[step]}`;
}

export const cost = (value) => (value ? `$${value.toFixed(value < 0.01 ? 5 : 2)}` : "no price known");
