// What the tests of views record and ask of it.

import { rowsOf } from "./sql.ts";
import { HOSTILE, server, tab } from "./stage.ts";

/** A file written from end to end and read here and there, one with a hostile name, a search in vain. */
export const WORK = `
dd if=/dev/zero of=data.bin bs=4096 count=400 conv=fsync 2>/dev/null
cat data.bin > /dev/null
for n in 7 300 12 251 90 33 388 150; do dd if=data.bin of=/dev/null bs=4096 count=1 skip=$n 2>/dev/null; done
head -c 20000 data.bin > '${HOSTILE}'; cat '${HOSTILE}' > /dev/null
cat missing 2>/dev/null
dd if=/dev/zero of=many.bin bs=16 count=21000 2>/dev/null
python3 -c 'import mmap
with open("mapped.bin", "w+b") as f:
    f.truncate(4 << 20)
    m = mmap.mmap(f.fileno(), 0)
    for at in (5, 1 << 20, 3 << 20): m[at] = 7'
true
`;

/** The same with many small writes that are flushed each. */
export const SLOWER = `${WORK}
dd if=/dev/zero of=data.bin bs=512 count=150 oflag=dsync conv=notrunc 2>/dev/null
`;

/** A file that is read through a mapping, in random order, and a directory that is listed again and again. */
export const MAPPED = `
dd if=/dev/zero of=mapped.bin bs=1M count=32 conv=fsync 2>/dev/null
python3 -c 'import mmap, os
with open("mapped.bin", "rb") as f:
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    m.madvise(mmap.MADV_RANDOM)
    for i in range(8192): m[i * 5 % 8192 * 4096]
os.mkdir("many")
for i in range(3000): open(f"many/{i}", "w").close()
for i in range(300): os.listdir("many")'
`;

/** Entries of a directory, and a few bytes of a file. */
export const LISTED = `
mkdir many; for i in $(seq 400); do : > many/$i; done
python3 -c 'import os
for i in range(2000): os.listdir("many")'
echo something > few.txt
`;

/** The session of WORK in the page's address. */
export const session = { s: "work.fathom" };

/** What SQL says, for what the page must show. */
export const sql = (statement: string, id = "work.fathom") => rowsOf(server, id, statement);

/** How many pixels of a plot are in color: neither ground, nor lines, nor text. */
export async function colored(within: string): Promise<number> {
	return tab.page.evaluate((selector) => {
		let found = 0;
		for (const canvas of document.querySelectorAll<HTMLCanvasElement>(`${selector} canvas`)) {
			const context = canvas.getContext("2d");
			if (!context || canvas.width === 0) continue;
			const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
			for (let i = 0; i < data.length; i += 4) {
				const r = data[i] ?? 0;
				const g = data[i + 1] ?? 0;
				const b = data[i + 2] ?? 0;
				if (Math.max(r, g, b) - Math.min(r, g, b) > 60 && (data[i + 3] ?? 0) > 100) found += 1;
			}
		}
		return found;
	}, within);
}
