//! Hostile files are refused without taking memory for what they claim to be.

use obprox_fuzz::memory::largest_in;
use obprox_fuzz::unfolded;
use obprox_infer::{Architecture, Kind, Model};

#[test]
fn memory_follows_the_file() {
    let architecture = Architecture::new(Kind::SmallCnn).with_width(0.1).unwrap();
    let sound = unfolded(&Model::random(architecture, 0.1, 1).unwrap().to_compressed().unwrap());
    let end = 32 + u32::from_le_bytes(sound[12..16].try_into().unwrap()) as usize;
    let header = String::from_utf8(sound[32..end].to_vec()).unwrap();
    let changes = [
        // A network of 3 billion parameters, shapes and sizes to match the largest counts, positions without end.
        (r#""base":3"#, r#""base":4000"#),
        (r#""classes":10"#, r#""classes":1048576"#),
        (r#""kind":"small-cnn""#, r#""kind":"resnet18""#),
        (r#""nonzeros":"#, r#""nonzeros":99999999999"#),
        (r#""parts":["#, r#""parts":[9999999999999,"#),
        (r#""shape":["#, r#""shape":[9999999999,"#),
        (r#""height":32"#, r#""height":99999999999"#),
    ];
    for (from, to) in changes {
        let header = header.replacen(from, to, 1);
        assert!(header.contains(to), "{from}");
        let rest = [header.as_bytes(), &sound[end..]].concat();
        let mut file = sound[..12].to_vec();
        file.extend((header.len() as u32).to_le_bytes());
        file.extend((32 + rest.len() as u64).to_le_bytes());
        file.extend(crc32fast::hash(&rest).to_le_bytes());
        file.extend([0; 4]);
        file.extend(rest);
        let (refused, largest) = largest_in(|| Model::from_compressed(&file).is_err());
        assert!(refused, "{to}");
        assert!(largest < 1 << 20, "{to} took {largest} bytes at once for a file of {}", file.len());
    }
}
