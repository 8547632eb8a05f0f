import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.CRC32;

/** Checks the pictures of an album with eight threads, each picture read once and whole. */
public class Pool {
    public static void main(String[] a) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> sums = new ArrayList<>();
        try (DirectoryStream<Path> album = Files.newDirectoryStream(Path.of("album"))) {
            for (Path p : album)
                sums.add(pool.submit(() -> {
                    CRC32 c = new CRC32();
                    c.update(Files.readAllBytes(p));
                    return c.getValue();
                }));
        }
        long all = 0;
        for (Future<Long> s : sums) all ^= s.get();
        pool.shutdown();
        System.out.printf("%d pictures, %08x%n", sums.size(), all);
    }
}
