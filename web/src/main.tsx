// First, so that the rules of a view override these, in the saved page, too.
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/parts.css";

import { createRoot } from "react-dom/client";
import { Shell } from "./app/Shell";
import { followAccess } from "./state/access";
import { listenForKeys } from "./state/keys";
import { followToken, takeToken } from "./state/server";
import { startTheme } from "./state/theme";

takeToken();
window.addEventListener("hashchange", takeToken);
followToken();
followAccess();
startTheme();
listenForKeys();
const page = document.getElementById("page");
if (page) createRoot(page).render(<Shell />);
