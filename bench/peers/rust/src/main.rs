// ! Carries out the orders on standard input, as ../../driver.ts says, through atomic-write-file.
use atomic_write_file::AtomicWriteFile;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::{fs, path::Path};

fn publish(order: &str) -> Result<(), Box<dyn Error>> {
    let order: Value = serde_json::from_str(order)?;
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(order["from"].as_str().ok_or("no from")?)? {
        let entry = entry?;
        files.insert(entry.file_name(), fs::read(entry.path())?);
    }
    for target in order["targets"].as_array().ok_or("no targets")? {
        let target = Path::new(target.as_str().ok_or("no path")?);
        fs::create_dir_all(target)?;
        for (name, content) in &files {
            let mut file = AtomicWriteFile::options().mode(0o600).open(target.join(name))?;
            file.write_all(content)?;
            file.commit()?;
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let answer = match publish(&line?) {
            Ok(()) => json!({}),
            Err(error) => json!({ "error": error.to_string() }),
        };
        println!("{answer}");
    }
    Ok(())
}
