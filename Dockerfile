# Builds the program and puts it alone into an image without shell or package manager, as a user who is not root.
#
#   docker build -t outboxd .
#   docker run -p 8080:8080 -e DATABASE_URL=postgres://… -v ./outboxd.toml:/etc/outboxd/outboxd.toml:ro outboxd \
#       serve --config /etc/outboxd/outboxd.toml
#
# Every setting can come by the environment instead of a file: OUTBOXD_SERVER__LISTEN, DATABASE_URL, DATABASE_URL_FILE,
# CRON_SECRET (see config.example.toml). Both stages are Debian 12, so that the program finds the C library it was built
# for; TLS, SQLite and the cryptography are compiled in.

FROM rust:1.95-bookworm AS build
WORKDIR /build

COPY . .
# The caches stay on the building machine, so that a changed line does not compile the dependencies again.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin outboxd && cp target/release/outboxd /outboxd

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /outboxd /outboxd
# In a container only the outside can reach a server; without a token it refuses this address and says so.
ENV OUTBOXD_SERVER__LISTEN=0.0.0.0:8080
EXPOSE 8080
# No HEALTHCHECK: there is no shell. Probes ask /livez and /readyz over HTTP.
ENTRYPOINT ["/outboxd"]
CMD ["serve"]
