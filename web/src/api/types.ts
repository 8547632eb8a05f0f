// What the server answers: docs/api.md. Times are nanoseconds since the session's start.

export interface Filter {
	pid?: number[];
	tid?: number[];
	comm?: string[];
	syscall?: string[];
	class?: string[];
	file?: number[];
	layer?: string[];
	path?: string;
	error?: "any" | "none" | string[];
	dur?: [min: number | null, max: number | null];
	not_pid?: number[];
	not_tid?: number[];
	not_comm?: string[];
	not_syscall?: string[];
	not_class?: string[];
	not_file?: number[];
	not_layer?: string[];
	not_path?: string;
	not_error?: "any" | "none" | string[];
}

/** Members of the filter that are lists of names or numbers. */
export type ListMember = "pid" | "tid" | "comm" | "syscall" | "class" | "file" | "layer";
