use std::fs;

use crate::{gct, names};

#[test]
fn the_demo_tells_a_whole_story() {
    let home = tempfile::tempdir().unwrap();
    let line = "demo --encounters 300 --steps 20";
    let assert = gct(home.path(), line).assert().success();
    let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    for word in [
        "labels d1_m1 and d2_m1",
        "gct ",
        "transformer ",
        "shallow ",
        "the best that any model can do",
        "AUCPR",
        "attention KL",
    ] {
        assert!(text.contains(word), "{text}");
    }
    let lines: Vec<&str> = text.lines().skip_while(|line| *line != "next:").skip(1).collect();
    assert_eq!(lines.len(), 4, "{text}");
    // The commands that it offers work.
    for line in lines {
        let words = line.trim().split_once(' ').unwrap().1;
        let short = if words.starts_with("train") { " --steps 3 --set model.width=16" } else { "" };
        gct(home.path(), &format!("{words}{short}")).assert().success();
    }
    let pictures = names(&home.path().join("gct-demo/report"));
    assert_eq!(
        pictures,
        [
            "card.md",
            "gct-attention.svg",
            "gct-block-1.svg",
            "gct-block-2.svg",
            "gct-block-3.svg",
            "learning-curves.svg",
            "report.html",
            "summary.json",
            "transformer-attention.svg",
            "transformer-block-1.svg",
            "transformer-block-2.svg",
            "transformer-block-3.svg",
        ]
    );
    // Again, it only looks: nothing is trained anew.
    let weights = fs::read(home.path().join("gct-demo/gct/last.safetensors")).unwrap();
    gct(home.path(), line).assert().success();
    assert_eq!(fs::read(home.path().join("gct-demo/gct/last.safetensors")).unwrap(), weights);
    for other in ["demo --encounters 301 --steps 20", "demo --encounters 300 --steps 10"] {
        let assert = gct(home.path(), other).assert().code(2);
        assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("--force starts over"));
    }
    // What is no demo's stays, whatever is forced.
    let mine = home.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::rename(home.path().join("gct-demo/shallow"), mine.join("gct")).unwrap();
    let weights = fs::read(mine.join("gct/last.safetensors")).unwrap();
    for (out, name) in [("mine", "`gct`"), ("gct-demo/data", "`dataset.json`")] {
        let assert = gct(home.path(), &format!("{line} --force --out {out}")).assert().code(2);
        let said = format!(
            "error: {out} holds {name}, which is not of a demo\nhint: choose another folder with --out\n"
        );
        assert_eq!(String::from_utf8_lossy(&assert.get_output().stderr), said);
    }
    assert_eq!(fs::read(mine.join("gct/last.safetensors")).unwrap(), weights);
    let before = names(home.path());
    for nonsense in ["demo --steps 0 --out x", "demo --encounters 5 --out x"] {
        gct(home.path(), nonsense).assert().code(2);
        assert_eq!(names(home.path()), before);
    }
}
