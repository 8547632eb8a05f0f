import java.io.*;
import java.nio.file.*;
import java.util.concurrent.*;

/** Renders the pages of a report; a job that takes too long is given up, and with it the worker. */
public class Render {
    static int render(int page) throws IOException {
        File raw = File.createTempFile("page", ".raw", new File("work"));
        raw.deleteOnExit();
        byte[] row = new byte[4096];
        try (OutputStream out = new BufferedOutputStream(new FileOutputStream(raw), 1 << 16)) {
            for (int y = 0; y < 60; y++) {
                row[y] = (byte) page;
                out.write(row);
            }
        }
        int sum = 0;
        for (byte b : Files.readAllBytes(raw.toPath()))
            sum += b;
        return sum;
    }

    public static void main(String[] args) throws Exception {
        Thread timer = new Thread(() -> {
            try {
                Thread.sleep(60000);
            } catch (InterruptedException e) {
                return;
            }
            Runtime.getRuntime().halt(2);
        });
        timer.setDaemon(true);
        timer.start();
        long sum = 0;
        for (int page = 0; page < 300; page++)
            sum += render(page);
        System.out.println("300 pages, " + sum);
        System.out.flush();
        // some drivers never end their threads, so no orderly exit
        Runtime.getRuntime().halt(0);
    }
}
