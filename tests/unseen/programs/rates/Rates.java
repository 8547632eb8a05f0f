import java.io.*;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;

/** Serves exchange rates out of rates.dat, which a nightly job replaces by a new one. */
public class Rates {
    static final int RECORD = 4096;

    public static void main(String[] a) throws Exception {
        Process job = new ProcessBuilder("/usr/bin/python3", "update.py").inheritIO().start();
        long sum = 0;
        try (FileChannel table = FileChannel.open(Path.of("rates.dat"), StandardOpenOption.READ)) {
            ByteBuffer rec = ByteBuffer.allocateDirect(RECORD);
            long records = table.size() / RECORD;
            for (int request = 0; request < 400; request++) {
                rec.clear();
                long at = (request * 7919L % records) * RECORD;
                while (rec.hasRemaining()) {
                    int n = table.read(rec, at + rec.position());
                    if (n < 0) throw new EOFException();
                }
                sum += rec.flip().getLong();
                Thread.sleep(4);
            }
        }
        job.waitFor();
        System.out.println("served, check " + sum);
    }
}
