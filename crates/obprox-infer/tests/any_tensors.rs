//! Compressed tensors of networks that have no architecture here: kept to the bit, and no more trusted than others.

use obprox_infer::{Model, Tensor, Weights};

fn weights() -> Weights {
    let tensors = [
        ("embed.weight", vec![3, 4], vec![0.0, 1.5, 0.0, -0.0, 0.0, 0.0, f32::INFINITY, 0.0, 0.0, 0.0, -2.0, 0.0]),
        ("gain", vec![], vec![2.5]),
        ("none", vec![0, 7], vec![]),
    ];
    tensors.into_iter().map(|(name, shape, data)| (name.to_owned(), Tensor::new(shape, data).unwrap())).collect()
}

#[test]
fn tensors_come_back_to_the_bit() {
    let read = Weights::from_compressed(&weights().to_compressed().unwrap()).unwrap();
    let bits = |weights: &Weights| -> Vec<(String, Vec<usize>, Vec<u32>)> {
        let one = |(name, tensor): (&str, &Tensor)| {
            (name.to_owned(), tensor.shape().to_vec(), tensor.data().iter().map(|value| value.to_bits()).collect())
        };
        weights.iter().map(one).collect()
    };
    assert_eq!(bits(&read), bits(&weights()));
}

#[test]
fn they_are_no_model() {
    let error = Model::from_compressed(&weights().to_compressed().unwrap()).unwrap_err().to_string();
    assert!(error.contains("names no architecture"), "{error}");
}

#[test]
fn a_small_file_does_not_unfold_to_anything() {
    let file = weights().to_compressed().unwrap();
    let header_end = 32 + u32::from_le_bytes(file[12..16].try_into().unwrap()) as usize;
    let header = String::from_utf8(file[32..header_end].to_vec()).unwrap();
    for shape in ["[3,4000000000]", "[4294967296,4294967296]", "[20000,1000]"] {
        let header = header.replace("[3,4]", shape);
        assert!(header.contains(shape));
        let rest = [header.as_bytes(), &file[header_end..]].concat();
        let mut hostile = file[..12].to_vec();
        hostile.extend((header.len() as u32).to_le_bytes());
        hostile.extend((32 + rest.len() as u64).to_le_bytes());
        hostile.extend(crc32fast::hash(&rest).to_le_bytes());
        hostile.extend([0; 4]);
        hostile.extend(rest);
        let error = Weights::from_compressed(&hostile).unwrap_err().to_string();
        assert!(error.starts_with("is too small a file"), "{shape}: {error}");
    }
}
