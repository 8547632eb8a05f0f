import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Random;

/** Eight workers draw maps from one file of tiles. */
public class Tiles {
    static final int TILE = 16384;
    static RandomAccessFile file;
    static FileChannel channel;

    static byte[] seekAndRead(long tile) throws Exception {
        byte[] data = new byte[TILE];
        synchronized (file) {
            file.seek(tile * TILE);
            file.readFully(data);
        }
        return data;
    }

    static byte[] readAt(long tile) throws Exception {
        ByteBuffer data = ByteBuffer.allocate(TILE);
        while (data.hasRemaining())
            if (channel.read(data, tile * TILE + data.position()) < 0)
                throw new Exception("tiles.bin is short");
        return data.array();
    }

    public static void main(String[] args) throws Exception {
        file = new RandomAccessFile("tiles.bin", "r");
        channel = file.getChannel();
        long tiles = file.length() / TILE;
        Thread[] workers = new Thread[8];
        for (int w = 0; w < workers.length; w++) {
            int seed = w;
            workers[w] = new Thread(() -> {
                Random r = new Random(seed);
                try {
                    for (int n = 0; n < 2200; n++) {
                        long tile = (long) (r.nextDouble() * tiles);
                        byte[] data = args.length > 0 ? readAt(tile) : seekAndRead(tile);
                        if (data.length != TILE)
                            System.out.println("short");
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                }
            });
        }
        for (Thread t : workers)
            t.start();
        for (Thread t : workers)
            t.join();
    }
}
