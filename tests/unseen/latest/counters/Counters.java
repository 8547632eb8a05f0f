import java.io.RandomAccessFile;
import java.util.Random;

/** Counts what each customer has used. */
public class Counters implements AutoCloseable {
    private final RandomAccessFile file;

    Counters(String name) throws Exception {
        file = new RandomAccessFile(name, "rws");
    }

    void add(int customer, long units) throws Exception {
        long at = customer * 8L;
        file.seek(at);
        long before = file.readLong();
        file.seek(at);
        file.writeLong(before + units);
    }

    @Override
    public void close() throws Exception {
        file.close();
    }

    public static void main(String[] args) throws Exception {
        Random random = new Random(9);
        try (Counters counters = new Counters("counters.dat")) {
            for (int n = 0; n < 180; n++)
                counters.add(random.nextInt(4 << 20), 1 + random.nextInt(100));
        }
        System.out.println("180 calls counted");
    }
}
