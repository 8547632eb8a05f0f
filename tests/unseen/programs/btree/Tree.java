import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;

/** Looks customers up in a three-level tree of 4 KB pages on disk. */
public class Tree {
    static final int PAGE = 4096, FAN = 64;
    static FileChannel file;
    static final ByteBuffer page = ByteBuffer.allocateDirect(PAGE);

    static ByteBuffer load(long no) throws IOException {
        page.clear();
        while (page.hasRemaining())
            if (file.read(page, no * PAGE + page.position()) < 0) throw new IOException("end of file");
        page.flip();
        return page;
    }

    static long find(long key) throws IOException {
        long i1 = key / (FAN * FAN) % FAN, i2 = key / FAN % FAN, i3 = key % FAN;
        long inner = load(0).getLong((int) i1 * 8);
        long leaf = load(inner).getLong((int) i2 * 8);
        return load(leaf).getLong((int) i3 * 8);
    }

    public static void main(String[] a) throws IOException {
        file = FileChannel.open(Path.of("customers.idx"), StandardOpenOption.READ);
        long x = 7, sum = 0;
        for (int q = 0; q < 80000; q++) {
            x = x * 6364136223846793005L + 1442695040888963407L;
            sum += find((x >>> 20) % ((long) FAN * FAN * FAN));
        }
        System.out.println(sum);
    }
}
