// Asks the server to open the session while the page's scripts are on their way. `src/state/server.ts` takes the answer.
(() => {
	const id = new URLSearchParams(window.location.search).get("s");
	let token = new URLSearchParams(window.location.hash.slice(1)).get("token");
	try {
		token = token || window.localStorage.getItem("fathom.token");
	} catch {
		// A browser that keeps nothing.
	}
	if (!id || !token) return;
	const address = `/api/sessions/${encodeURIComponent(id)}`;
	const authorization = `Bearer ${token}`;
	const answer = fetch(address, {
		headers: { Authorization: authorization },
		credentials: "same-origin",
		cache: "no-store",
	});
	// Without the page's scripts nothing waits for it.
	answer.catch(() => {});
	window.fathomEarly = { address, authorization, answer };
})();
