# The main job on CPUs: docker build -t confide . && docker run -v "$PWD/results:/confide/results" confide
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /confide
# What is installed changes less often than the code, so its layer comes first.
COPY Makefile pyproject.toml constraints.txt torch.txt README.md LICENSE ./
COPY src src
RUN make setup
COPY . .
CMD ["make", "reproduce"]
