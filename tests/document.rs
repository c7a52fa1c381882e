//! What the documents claim is so: the tests that they name exist, and what they link to is there.

use std::{
    fs,
    path::{Path, PathBuf},
};

const DOCUMENT: &str = include_str!("../docs/idempotency.md");

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let (_, table) = DOCUMENT.split_once("## Forty behaviours").expect("the chapter");
    let cells = table.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    cells.filter(|cells| cells[0].parse::<u8>().is_ok())
}

/// All Rust sources under a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn the_table_of_behaviours_has_forty_rows_and_each_has_a_test_or_cannot_arise() {
    let numbers: Vec<_> = rows().map(|cells| cells[0].parse::<u8>().unwrap()).collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    for cells in rows() {
        assert!(cells[3].starts_with('`') || cells[2].starts_with('–'), "{cells:?}");
    }
}

/// All code of the programs and the tests.
fn code() -> String {
    let mut code = String::new();
    for folder in ["src", "tests"] {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut code);
    }
    code
}

#[test]
fn every_test_that_the_document_names_exists() {
    let code = code();
    for cells in rows() {
        for name in cells[3].split(',').map(|name| name.trim().trim_matches('`')).filter(|name| !name.is_empty()) {
            assert!(code.contains(&format!("fn {name}(")), "there is no test {name}");
        }
    }
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let (code, document) = (code(), include_str!("../docs/security.md"));
    let is_name =
        |text: &&str| text.matches('_').count() >= 3 && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let names: Vec<_> = document.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(names.len() > 40, "only {}", names.len());
    for name in names {
        assert!(code.contains(&format!("fn {name}(")), "there is no test {name}");
    }
}

#[test]
fn the_code_that_the_readme_shows_is_code_of_a_tool() {
    let readme = include_str!("../README.md");
    let blocks: Vec<_> = readme.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let mut tools = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tools"), &mut tools);
    for block in &blocks {
        assert!(
            tools.contains(block),
            "no file of src/tools has this, so the README should show a tool that is there:\n{block}"
        );
    }
    assert!(!blocks.is_empty(), "the README shows no tool");
}

/// What a crate is called in code, where that is not its name with underscores.
fn library(name: &str) -> String {
    match name {
        "dynoxide-rs" => String::from("dynoxide"),
        name => name.replace('-', "_"),
    }
}

#[test]
fn every_dependency_is_used() {
    let manifest = include_str!("../Cargo.toml");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut programs, mut all) = (String::new(), String::new());
    sources(&root.join("src"), &mut programs);
    for folder in ["src", "tests", "examples"] {
        sources(&root.join(folder), &mut all);
    }
    for (heading, code) in [("[dependencies]", &programs), ("[dev-dependencies]", &all)] {
        let section = manifest.split_once(&format!("\n{heading}\n")).expect(heading).1.split("\n[").next().unwrap();
        let names = section.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name);
        for name in names.filter(|name| !name.starts_with('#')) {
            let library = library(name);
            let is_used = [format!("{library}::"), format!("use {library};")].iter().any(|used| code.contains(used));
            assert!(is_used, "nothing uses {name}");
        }
    }
}

/// The documents of the repository: those at the top, and those in `docs`.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = [root.to_owned(), root.join("docs")];
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[test]
fn every_relative_link_of_the_documents_leads_to_a_file() {
    let mut links = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for rest in text.split("](").skip(1) {
            let target = rest.split([')', '#']).next().unwrap();
            let is_path = target.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c));
            if target.is_empty() || !is_path {
                continue; // elsewhere, or no link
            }
            assert!(document.parent().unwrap().join(target).exists(), "{}: {target}", document.display());
            links += 1;
        }
    }
    assert!(links > 50, "only {links} links were found");
}

#[test]
fn no_document_is_left_unfinished() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        assert!(!text.contains("TODO"), "{}", document.display());
    }
}
