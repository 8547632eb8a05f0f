import java.sql.*;

public class Orders {
    public static void main(String[] args) throws Exception {
        try (Connection c = DriverManager.getConnection("jdbc:derby:shop")) {
            PreparedStatement p = c.prepareStatement("insert into orders values (?, ?, ?)");
            for (int i = 0; i < 3000; i++) {
                p.setInt(1, i);
                p.setString(2, "customer " + i * 7919L % 500);
                p.setDouble(3, i % 90 + 0.5);
                p.executeUpdate();
            }
        }
        try {
            DriverManager.getConnection("jdbc:derby:;shutdown=true");
        } catch (SQLException stopped) {
            System.out.println(stopped.getMessage());
        }
    }
}
