// Light, dark, or as the system has it.

import { effect, signal } from "./ui.js";

const KEPT_AS = "headwater.theme";
export const THEMES = ["auto", "light", "dark"];
export const theme = signal(kept());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  try {
    window.localStorage.setItem(KEPT_AS, theme.value);
  } catch {
    // it holds until the page is closed
  }
});

function kept() {
  try {
    const value = window.localStorage.getItem(KEPT_AS);
    return THEMES.includes(value) ? value : "auto";
  } catch {
    return "auto";
  }
}
