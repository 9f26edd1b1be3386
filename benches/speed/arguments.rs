//! The command line.

use std::path::PathBuf;

use crate::scenarios;

/// What is to be done.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Everything at a size that takes seconds altogether: it shows that all of it runs, and measures nothing.
    pub smoke: bool,
    /// Where to write all figures.
    pub json: Option<PathBuf>,
    /// Where to draw.
    pub plot: Option<PathBuf>,
    /// Names of scenarios; all of them when empty.
    pub only: Vec<String>,
    /// Whether to measure other programs too, which are installed from their registries.
    pub peers: bool,
}

impl Arguments {
    /// Reads the arguments; what is not known is refused with the list of what is.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut read = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value\n\n{}", help()));
            match argument.as_str() {
                "--smoke" => read.smoke = true,
                "--json" => read.json = Some(value()?.into()),
                "--plot" => read.plot = Some(value()?.into()),
                "--only" => read.only.extend(names(&value()?)?),
                "--peers" => read.peers = true,
                // What cargo tells every benchmark.
                "--bench" => {}
                "--help" => return Err(help()),
                unknown => return Err(format!("{unknown} is not known\n\n{}", help())),
            }
        }
        Ok(read)
    }
}

fn names(list: &str) -> Result<Vec<String>, String> {
    let known = |name: &&str| scenarios::ALL.iter().any(|scenario| scenario.name == *name);
    if let Some(unknown) = list.split(',').find(|name| !known(name)) {
        return Err(format!("there is no scenario {unknown:?}\n\n{}", help()));
    }
    Ok(list.split(',').map(str::to_owned).collect())
}

fn help() -> String {
    let lines: Vec<String> =
        scenarios::ALL.iter().map(|scenario| format!("  {:<10} {}", scenario.name, scenario.about)).collect();
    let scenarios = lines.join("\n");
    format!(
        "cargo bench --bench speed -- [OPTIONS]

  --smoke                 every scenario in a few seconds, to see that it runs
  --only NAME[,NAME...]   these scenarios alone
  --json FILE             write all figures there
  --plot FOLDER           draw there
  --peers                 measure other programs too, installed from their registries
  --help                  this text

Scenarios:
{scenarios}"
    )
}
