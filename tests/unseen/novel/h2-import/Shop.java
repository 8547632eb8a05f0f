import java.sql.*;

class Shop {
    public static void main(String[] arguments) throws Exception {
        try (Connection c = DriverManager.getConnection("jdbc:h2:./shop", "sa", "")) {
            c.createStatement().execute("CREATE TABLE orders (id INT PRIMARY KEY, customer INT, total DOUBLE, note VARCHAR(80))");
            PreparedStatement insert = c.prepareStatement("INSERT INTO orders VALUES (?, ?, ?, ?)");
            for (int n = 0; n < 20000; n++) {
                insert.setInt(1, n);
                insert.setInt(2, n * 31 % 900);
                insert.setDouble(3, n * 0.7);
                insert.setString(4, "order number " + n);
                insert.execute();
            }
            ResultSet r = c.createStatement().executeQuery("SELECT COUNT(*), SUM(total) FROM orders");
            r.next();
            System.out.println(r.getInt(1) + " " + r.getDouble(2));
        }
    }
}
