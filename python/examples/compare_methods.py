"""The paper's methods on a network and a part of Fashion-MNIST: accuracy, density and objective of each.

    OBPROX_DATA=… python compare_methods.py --net resnet18 --width 0.125 --images 10000 --epochs 20

OBPROX_DATA names a directory that holds fashion-mnist/*.gz. One line is printed for each method as it ends.
"""

import argparse
import os
import time

import fashion_mnist
import torch
from torch.nn import functional as F

from obprox.torch import RDA, OBProxSG, ProxSG, ProxSVRG, nets, sparsity_report

NETS = {"small-cnn": nets.SmallCNN, "resnet18": nets.ResNet18, "mobilenet-v1": nets.MobileNetV1}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", choices=NETS, default="resnet18")
    parser.add_argument("--width", type=float, default=0.125)
    parser.add_argument("--images", type=int, default=10_000, help="how many of the 60000 to train on")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1, help="times 0.1 after three quarters of the epochs")
    parser.add_argument("--lambda", dest="lambda_", type=float, default=1e-3)
    parser.add_argument("--gamma", type=float, default=30.0, help="of RDA")
    parser.add_argument("--methods", nargs="*", help="names of the methods to run; all without it")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def optimizers(args, steps_per_epoch):
    """Half of the epochs are OBProx-SG+'s N_P, as in the paper's networks; a quarter each OBProx-SG's N_P and N_O."""
    common = dict(lr=args.lr, lambda_=args.lambda_)
    half, quarter = args.epochs // 2, max(1, args.epochs // 4)
    return {
        "SGD": lambda model: torch.optim.SGD(model.parameters(), lr=args.lr),
        "Prox-SG": lambda model: ProxSG(model.parameters(), **common),
        "RDA": lambda model: RDA(model.parameters(), gamma=args.gamma, lambda_=args.lambda_),
        "Prox-SVRG": lambda model: ProxSVRG(model.parameters(), buffers=model.buffers(), **common),
        "OBProx-SG": lambda model: OBProxSG(
            model.parameters(), n_p=quarter, n_o=quarter, steps_per_epoch=steps_per_epoch, **common
        ),
        "OBProx-SG+": lambda model: OBProxSG(
            model.parameters(), n_p=half, n_o=None, steps_per_epoch=steps_per_epoch, **common
        ),
    }


def train(model, optimizer, images, labels, args):
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[args.epochs * 3 // 4], gamma=0.1)

    def gradient_over(batches):
        """A closure that leaves the gradient of the mean loss over some batches."""

        def closure():
            optimizer.zero_grad()
            total, count = 0.0, sum(len(rows) for rows in batches)
            for rows in batches:
                loss = F.cross_entropy(model(images[rows]), labels[rows]) * (len(rows) / count)
                loss.backward()
                total += loss.item()
            return total

        return closure

    for _ in range(args.epochs):
        batches = torch.randperm(len(images)).split(args.batch)
        if isinstance(optimizer, ProxSVRG):
            optimizer.anchor(gradient_over(batches))
        for rows in batches:
            optimizer.step(gradient_over([rows]))
        scheduler.step()


@torch.no_grad()
def measured(model, images, labels):
    """Mean loss and accuracy in evaluation mode."""
    scores = torch.cat([model.eval()(part) for part in images.split(1000)])
    return F.cross_entropy(scores, labels).item(), (scores.argmax(1) == labels).double().mean().item()


def main():
    args = arguments()
    data = os.environ.get("OBPROX_DATA")
    if data is None:
        raise SystemExit("OBPROX_DATA must name the directory that holds fashion-mnist/*.gz")
    images, labels = fashion_mnist.read(data, "train", args.images)
    test = fashion_mnist.read(data, "t10k", 10_000)
    print("| method | test accuracy | density | F | f | seconds |\n|---|---|---|---|---|---|", flush=True)
    for name, build in optimizers(args, -(-len(images) // args.batch)).items():
        if args.methods and name not in args.methods:
            continue
        torch.manual_seed(args.seed)
        model = NETS[args.net](channels=1, width=args.width)
        optimizer = build(model)
        started = time.perf_counter()
        train(model, optimizer, images, labels, args)
        seconds = time.perf_counter() - started
        loss, _ = measured(model, images, labels)
        l1 = sum(weight.abs().sum().item() for weight in model.parameters() if weight.dim() >= 2)
        density = sparsity_report(model).weights.density
        figures = f"{measured(model, *test)[1]:.2%} | {density:.2%} | {loss + args.lambda_ * l1:.3f} | {loss:.3f}"
        print(f"| {name} | {figures} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
