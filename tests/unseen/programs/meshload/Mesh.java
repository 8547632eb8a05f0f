import java.io.*;

/** Loads a triangle mesh and prints its surface. */
public class Mesh {
    public static void main(String[] a) throws IOException {
        double area = 0;
        try (DataInputStream in = new DataInputStream(new FileInputStream("model.mesh"))) {
            int triangles = in.readInt();
            float[] p = new float[9];
            for (int t = 0; t < triangles; t++) {
                for (int i = 0; i < 9; i++) p[i] = in.readFloat();
                double ux = p[3] - p[0], uy = p[4] - p[1], uz = p[5] - p[2];
                double vx = p[6] - p[0], vy = p[7] - p[1], vz = p[8] - p[2];
                double x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
                area += Math.sqrt(x * x + y * y + z * z) / 2;
            }
        }
        System.out.printf("surface %.3f%n", area);
    }
}
