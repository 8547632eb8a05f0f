// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

/** The layers, from the program down to the device, then what takes the CPU away; `by`: recorded with. */
export const LAYERS: readonly { name: string; by: string; meaning: string }[] = [
	{ name: "user", by: "user", meaning: "the program itself" },
	{ name: "syscall", by: "syscall", meaning: "the call itself, including all kernel work without a hook of its own" },
	{ name: "vfs", by: "vfs", meaning: "the kernel's switch between file systems" },
	{ name: "pagecache", by: "pagecache", meaning: "page faults and the page cache" },
	{ name: "fs", by: "fs", meaning: "the file system" },
	{ name: "fuse", by: "fuse", meaning: "waiting for the server of a FUSE file system" },
	{ name: "nfs", by: "nfs", meaning: "waiting for an NFS server" },
	{ name: "block", by: "block", meaning: "waiting for the device" },
	{ name: "device", by: "block", meaning: "the device working" },
	{ name: "sched", by: "sched", meaning: "off the CPU: waiting for a lock, an event, or the CPU" },
	{ name: "irq", by: "irq", meaning: "interrupts that took the CPU" },
	{ name: "cpu", by: "cpu", meaning: "the CPU" },
];
