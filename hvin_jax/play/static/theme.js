// Light or dark: as the system has it, until somebody chooses; the choice is kept where the browser allows it.

const root = document.documentElement, KEY = "theme";

function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function recall() {
  if (["light", "dark"].includes(kept())) root.dataset.theme = kept();
}

export function toggle() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem(KEY, root.dataset.theme);
  } catch {
    // It holds until the page is closed.
  }
}
