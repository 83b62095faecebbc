// Light or dark: as the system has it, or as chosen. The choice alone is stored.
import { announce, button } from "./dom.js";

const PLACE = "eunoe.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const SIGNS = { system: "◐", light: "☀", dark: "☾" };

const choice = () => (localStorage.getItem(PLACE) in NEXT ? localStorage.getItem(PLACE) : "system");

export function applyTheme() {
  document.documentElement.dataset.theme = choice();
}

export function themeButton() {
  const own = button(
    "",
    () => {
      localStorage.setItem(PLACE, NEXT[choice()]);
      applyTheme();
      label(own);
      announce(`Colours: ${choice()}`);
    },
    { class: "quiet theme" },
  );
  label(own);
  return own;
}

function label(own) {
  own.textContent = SIGNS[choice()];
  own.setAttribute("aria-label", `Colours: ${choice()}. Change to ${NEXT[choice()]}`);
  own.title = `Colours: ${choice()}`;
}
