//! Certificates for tests of TLS.

use std::process::Command;

use crate::Scratch;

/// Files of a new certificate for 127.0.0.1 and of its key.
pub fn certificate(scratch: &Scratch, name: &str) -> [String; 2] {
    let file = |kind: &str| {
        let path = scratch.root().join(format!("{name}.{kind}"));
        path.to_str().unwrap().to_owned()
    };
    let [certificate, key] = [file("pem"), file("key")];
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=fathom",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            // It is trusted as it is and signs no other.
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    [certificate, key]
}
