// Types of the explanation of address `why`, as crate `fathom_why` writes them.

export type Link =
	| { to: "request"; rid: number }
	| { to: "file"; file_id: number }
	| { to: "process"; pid: number }
	| { to: "thread"; tid: number }
	| { to: "comm"; comm: string }
	| { to: "device"; device: string }
	| { to: "layer"; layer: string }
	| { to: "syscall"; syscall: string }
	| { to: "finding"; rule: string };

export interface Piece {
	/** Its text, with the spaces around it: not escaped. */
	text: string;
	/** What it stands for; null for plain text. */
	link: Link | null;
}

export interface Story {
	/** Three at most: what took the time, what it waited for, what to change. */
	sentences: { pieces: Piece[] }[];
}
