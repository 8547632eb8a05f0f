rustc -O -o pcaprec pcaprec.rs
