import java.io.*;

/** Prints how large the parts of a mesh are: a header, then records of five numbers. */
public class Mesh {
    static long sum(DataInput in, int count) throws IOException {
        long sum = 0;
        for (int n = 0; n < count; n++) {
            int part = in.readInt(), a = in.readInt(), b = in.readInt(), c = in.readInt(), mark = in.readInt();
            if (mark >= 0)
                sum += part ^ (a + b + c);
        }
        return sum;
    }

    public static void main(String[] args) throws IOException {
        try (RandomAccessFile in = new RandomAccessFile("mesh.bin", "r")) {
            int count = in.readInt();
            System.out.println(sum(in, count));
        }
    }
}
