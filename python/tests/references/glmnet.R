# Writes glmnet.json: fits by glmnet, which the tests hold ours to.
#
#     apt install r-cran-glmnet r-cran-jsonlite r-cran-mass r-cran-survival && Rscript python/tests/references/glmnet.R
#
# glmnet minimises −ln L/N + λ·(α‖x‖₁ + (1 − α)/2·‖x‖₂²) by coordinate descent along a path of λ.

suppressMessages(library(glmnet))
library(jsonlite)

glmnet.control(fdev = 0, devmax = 1, epsnr = 1e-15, mxitnr = 1000)
set.seed(5)
n <- 150
X <- round(matrix(rnorm(n * 8), n), 3)
offset <- round(runif(n, -1, 1), 3)
weights <- sample(1:3, n, replace = TRUE)
score <- 0.2 + 0.8 * X[, 1] - 0.6 * X[, 2] + 0.4 * X[, 5]
targets <- list(
  squared = round(score + offset + rnorm(n), 4),
  logistic = as.numeric(rlogis(n) + score + offset > 0),
  poisson = rpois(n, exp(score + offset)),
  gamma = round(rgamma(n, 2, 2 / exp(score + offset)), 4) + 1e-3,
  `negative-binomial` = rnbinom(n, size = 2, mu = exp(score + offset)),
  softmax = as.integer(cut(score + rlogis(n), c(-Inf, -0.7, 0.9, Inf)))
)
days <- ceiling(8 * rexp(n) / exp(score))
event <- as.numeric(runif(n) < 0.7)

families <- list(
  squared = "gaussian", logistic = "binomial", poisson = "poisson", gamma = Gamma(link = "log"),
  `negative-binomial` = MASS::negative.binomial(2), softmax = "multinomial", cox = "cox"
)
lambdas <- c(0.3, 0.2, 0.1, 0.05, 0.02)

# The path of a loss; what is compared is one λ of it.
fit <- function(loss, ...) {
  y <- if (loss == "cox") survival::Surv(days, event) else targets[[loss]]
  suppressWarnings(glmnet(X, y, family = families[[loss]], lambda = lambdas, standardize = FALSE, thresh = 1e-20,
                          maxit = 1e7, ...))
}

# The weights at a λ, and the intercept where there is one, class by class where there are several.
weights_of <- function(found, lambda, ...) {
  rows <- coef(found, s = lambda, ...)
  if (!is.list(rows)) rows <- list(rows)
  rows <- unname(lapply(rows, as.vector))
  if (length(rows[[1]]) == ncol(X)) return(list(coef = rows, intercept = list()))
  list(coef = lapply(rows, function(row) row[-1]), intercept = lapply(rows, function(row) row[1]))
}

cases <- list()
add <- function(what, loss, lambda, found, given = list(), ...) {
  case <- c(list(what = what, loss = loss, lambda = lambda, given = given), weights_of(found, lambda, ...))
  cases[[length(cases) + 1]] <<- case
}

for (loss in c("squared", "logistic", "poisson", "gamma", "negative-binomial")) {
  add("offset", loss, 0.05, fit(loss, offset = offset), list(offset = TRUE))
}
for (loss in c("squared", "logistic", "poisson")) {
  add("bounds", loss, 0.02, fit(loss, lower.limits = -0.25, upper.limits = 0.3), list(bounds = c(-0.25, 0.3)))
  add("positive", loss, 0.05, fit(loss, lower.limits = 0), list(positive = TRUE))
}
add("elastic net", "logistic", 0.05, fit("logistic", alpha = 0.5, weights = weights), list(l1_ratio = 0.5, weights = TRUE))
add("factors", "logistic", 0.05, fit("logistic", penalty.factor = c(0, 1, 1, 2, 1, 1, 1, 2)),
    list(penalty_weights = c(0, 1, 1, 2, 1, 1, 1, 2) * 8 / 9))
add("classes", "softmax", 0.02, fit("softmax"))
add("grouped classes", "softmax", 0.05, fit("softmax", type.multinomial = "grouped"), list(groups = "each"))
add("breslow", "cox", 0.05, fit("cox"), list(ties = "breslow"))
add("breslow", "cox", 0.02, fit("cox", weights = weights), list(ties = "breslow", weights = TRUE))
for (loss in c("squared", "logistic", "poisson")) {
  add("between", loss, 0.07, fit(loss), list(path = lambdas))
  relaxed <- fit(loss, relax = TRUE)
  for (gamma in c(0, 0.5)) add("relaxed", loss, 0.1, relaxed, list(path = lambdas, gamma = gamma), gamma = gamma)
}

known <- list(version = as.character(packageVersion("glmnet")), X = X, offset = offset, weights = weights, targets = targets,
              days = days, event = event, cases = cases)
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)))
writeLines(toJSON(known, digits = NA, auto_unbox = TRUE), file.path(here, "glmnet.json"))
