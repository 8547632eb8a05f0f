// Stands in the page itself (vite.config.ts): asks the server for the session, for what every view of one shows first,
// and for what the reader may do, while the page's scripts are on their way. `state/early.ts` takes the answers.
(() => {
	const query = new URLSearchParams(window.location.search);
	const id = query.get("s");
	let token = new URLSearchParams(window.location.hash.slice(1)).get("token");
	try {
		token = token || window.localStorage.getItem("fathom.token");
	} catch {
		// A browser that keeps nothing.
	}
	if (!id || !token) return;
	const authorization = `Bearer ${token}`;
	const answers = new Map();
	const ask = (path) => {
		const address = `/api${path}`;
		const answer = fetch(address, {
			headers: { Authorization: authorization },
			credentials: "same-origin",
			cache: "no-store",
		}).then(async (sent) => {
			if (!sent.ok || sent.redirected) return sent;
			const { status, headers } = sent;
			return new Response(await sent.arrayBuffer(), { status, headers });
		});
		// Without the page's scripts nothing waits for it.
		answer.catch(() => {});
		answers.set(address, answer);
	};
	const session = `/sessions/${encodeURIComponent(id)}`;
	ask(session);
	// The strip of the whole session, and the overview's plots of rates: without latencies, which are most of the answer. With a filter the scripts know how to ask.
	const pixels = Math.ceil(window.innerWidth / 2 / 64) * 64;
	if (!query.has("f")) ask(`${session}/tiles?by=purpose&busy=1&faults=1&pixels=${pixels}`);
	ask("/access");
	window.fathomEarly = { authorization, asked: performance.now(), answers };
})();
