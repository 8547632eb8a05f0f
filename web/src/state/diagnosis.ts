// The diagnosis of the open session.

import type { Diagnosis } from "../api/diagnosis";
import { sessionPath } from "../api/session";
import { type Resource, useResource } from "./resource";
import { client } from "./server";
import { useLoad, useSession } from "./session";

/** A diagnosis reads every call: of a running recording it is made again this often. */
const AGAIN_NS = 10e9;

/** The diagnosis of the whole session; not asked for before `wanted`, nor before the plots and lists are there. */
export function useDiagnosis(wanted: boolean): Resource<Diagnosis> {
	const session = useSession();
	const path = sessionPath(session.id, "/findings");
	const turn = session.live ? Math.floor(session.bounds.to / AGAIN_NS) : -1;
	const load = useLoad(path, (signal) => client.json<Diagnosis>(path, signal), "later");
	return useResource(wanted ? path : null, load, turn);
}
