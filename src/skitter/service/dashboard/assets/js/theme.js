// Sets the theme before anything is painted; a classic script, because modules run too late for that.
// The choice (auto, light, dark) is kept in localStorage; auto follows the system and its changes.
(function () {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try {
      return localStorage.getItem("skitter.theme") || "auto";
    } catch {
      return "auto";
    }
  };
  const apply = (choice) => {
    const dark = choice === "dark" || (choice === "auto" && system.matches);
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  };
  apply(kept());
  system.addEventListener("change", () => apply(kept()));
  globalThis.skitterTheme = {
    kept,
    next() {
      const choice = { auto: "light", light: "dark", dark: "auto" }[kept()] || "auto";
      try {
        localStorage.setItem("skitter.theme", choice);
      } catch { /* a private window: for this page only */ }
      apply(choice);
      return choice;
    },
  };
})();
