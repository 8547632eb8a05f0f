import java.nio.*;
import java.nio.channels.FileChannel;
import java.nio.file.*;

/** Computes a height field straight into a mapped file and makes it durable once. */
public class Grid {
    public static void main(String[] a) throws Exception {
        int n = 4096;
        try (FileChannel f = FileChannel.open(Path.of("heights.raw"), StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MappedByteBuffer m = f.map(FileChannel.MapMode.READ_WRITE, 0, (long) n * n * 4);
            FloatBuffer h = m.order(ByteOrder.nativeOrder()).asFloatBuffer();
            float[] row = new float[n];
            for (int y = 0; y < n; y++) {
                for (int x = 0; x < n; x++) row[x] = (float) ((x ^ y) * 0.5 + (x & y) * 0.25);
                h.put(y * n, row);
            }
            m.force();
            f.force(true);
        }
        try (FileChannel d = FileChannel.open(Path.of("."), StandardOpenOption.READ)) { d.force(true); }
    }
}
