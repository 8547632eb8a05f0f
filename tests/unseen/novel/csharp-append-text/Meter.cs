using System.IO;

class Meter {
    static void Main(string[] arguments) {
        if (arguments.Length == 0)
            for (int n = 0; n < 30000; n++) File.AppendAllText("meter.csv", n + ";" + n * 37 % 1000 + "\n");
        else
            using (var writer = new StreamWriter("meter.csv", true))
                for (int n = 0; n < 30000; n++) writer.Write(n + ";" + n * 37 % 1000 + "\n");
        System.Console.WriteLine(new FileInfo("meter.csv").Length);
    }
}
