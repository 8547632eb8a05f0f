use std::fs::File;
use std::io::BufReader;

fn main() {
    let file = File::open("orders.json").unwrap();
    let orders: serde_json::Value = if std::env::args().len() > 1 {
        serde_json::from_reader(BufReader::new(file)).unwrap()
    } else {
        serde_json::from_reader(file).unwrap()
    };
    println!("{}", orders.as_array().unwrap().len());
}
