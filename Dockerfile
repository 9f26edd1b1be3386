# Builds the program and puts it alone into an image: no shell, no package manager, not root.
#
#   docker build -t outboxd:0.1.0 .
#   docker run -p 8080:8080 -e DATABASE_URL=postgres://… -e APP_TOKEN -e BILLING_SECRET \
#       -v ./outboxd.toml:/etc/outboxd/outboxd.toml:ro outboxd:0.1.0 serve --config /etc/outboxd/outboxd.toml
#
# Every setting can come by the environment instead of a file: OUTBOXD_SERVER__LISTEN, DATABASE_URL, DATABASE_URL_FILE,
# CRON_SECRET (see config.example.toml). TLS, SQLite and the cryptography are compiled in.

FROM rust:1.95-bookworm AS build
WORKDIR /build

COPY . .
# The caches stay on the building machine, so that a changed line does not compile the dependencies again.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin outboxd && cp target/release/outboxd /outboxd

# What the program needs beside itself: the C library that it was built for, certificate authorities, a user, and places
# that this user may write to.
RUN scripts/image-root /outboxd /image

FROM scratch
COPY --from=build /image /
USER 65532:65532
WORKDIR /data
ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
# In a container only the outside can reach a server; without a token it refuses this address and says so.
ENV OUTBOXD_SERVER__LISTEN=0.0.0.0:8080
EXPOSE 8080
# No HEALTHCHECK: there is no shell. Probes ask /livez and /readyz over HTTP.
ENTRYPOINT ["/outboxd"]
CMD ["serve"]
