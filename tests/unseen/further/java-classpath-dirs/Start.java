public class Start {
    public static void main(String[] args) throws Exception {
        for (int m = 0; m < 220; m++)
            for (int c = 0; c < 12; c++)
                ((Runnable) Class.forName("app.m" + m + ".C" + c).getDeclaredConstructor().newInstance()).run();
        System.out.println("started");
    }
}
