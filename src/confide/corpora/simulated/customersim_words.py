"""Word lists of the simulator: the private variant's and, with no word of a name or place in
common, the public one's.

Given names stand roughly in order of how common they are (earlier ones are drawn more often);
surnames are a short list of common ones followed by compounds of a stem and an ending, which
together give some hundred thousand full names.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """What names, streets and cities of one variant are made of."""

    first: tuple[str, ...]
    last: tuple[str, ...]
    streets: tuple[str, ...]  # kinds of street
    city_stems: tuple[str, ...]
    city_ends: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text.split()))


def _last(common: str, stems: str, ends: str) -> tuple[str, ...]:
    """Common surnames, then every stem with every ending, without repeats."""
    return _words(
        " ".join([common, *(stem + end for stem in stems.split() for end in ends.split())])
    )


STATES = _words(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR PA RI SC "
    "SD TN TX UT VT VA WA WV WI WY"
)

PRIVATE = Words(
    first=_words(
        """
        James Mary Robert John Linda Michael Patricia William Barbara David Jennifer Richard Elizabeth Susan Joseph Thomas
        Charles Jessica Christopher Sarah Daniel Karen Nancy Matthew Lisa Anthony Betty Mark Helen Sandra Donald Donna Carol
        Steven Ruth Paul Sharon Andrew Michelle Joshua Laura Kenneth Kimberly Kevin Deborah Brian Dorothy George Amy Edward
        Angela Ronald Ashley Timothy Brenda Jason Emma Jeffrey Olivia Ryan Cynthia Jacob Marie Gary Janet Nicholas Catherine
        Eric Frances Jonathan Christine Stephen Samantha Larry Debra Justin Rachel Scott Carolyn Brandon Virginia Benjamin
        Maria Samuel Heather Gregory Diane Frank Julie Alexander Joyce Raymond Victoria Patrick Kelly Jack Christina Dennis
        Lauren Jerry Joan Tyler Evelyn Aaron Judith Jose Megan Adam Andrea Nathan Cheryl Henry Hannah Zachary Jacqueline
        Douglas Martha Peter Gloria Kyle Teresa Noah Ann Ethan Sara Jeremy Madison Walter Kathryn Christian Janice Keith
        Jean Austin Alice Roger Abigail Terry Julia Sean Judy Gerald Sophia Carl Grace Dylan Denise Harold Amber Jordan
        Doris Jesse Marilyn Bryan Danielle Lawrence Beverly Arthur Isabella Gabriel Theresa Bruce Diana Logan Natalie Billy
        Brittany Joe Charlotte Alan Rose Juan Alexis Elijah Kayla Willie Lori Albert Wayne Randy Mason Vincent Liam Roy
        Bobby Caleb Bradley Russell Lucas Eugene Philip Johnny Tiffany Tammy Tonya Crystal Phyllis Wanda Norma Peggy
        Robin Dawn Tracy Glenda Rita Ellen Edna Florence Thelma Hazel Marjorie Esther Lillian Clara Ethel Geraldine Pauline
        """
    ),
    last=_last(
        """
        Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson
        Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson Walker Young Allen
        King Wright Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Gomez
        Phillips Evans Turner Diaz Parker Cruz Edwards Collins Reyes Stewart Morris Morales Murphy Cook Rogers Gutierrez
        Ortiz Morgan Cooper Peterson Bailey Reed Kim Ramos Cox Ward Richardson Watson Brooks Chavez Wood Bennett Gray
        Mendoza Ruiz Hughes Price Alvarez Castillo Sanders Patel Myers Long Ross Foster Jimenez Powell Jenkins Perry
        Sullivan Bell Coleman Butler Henderson Barnes Gonzales Fisher Vasquez Simmons Romero Patterson Hamilton Graham
        Reynolds Griffin Wallace Moreno West Cole Hayes Bryant Herrera Gibson Ellis Tran Medina Aguilar Stevens Murray Ford
        Castro Marshall Owens Harrison Fernandez Woods Washington Kennedy Wells Vargas Chen Freeman Webb Tucker Guzman
        Burns Crawford Olson Simpson Porter Hunter Gordon Mendez Silva Shaw Snyder Dixon Munoz Hunt Hicks Holmes Palmer
        Wagner Black Robertson Boyd Stone Salazar Fox Warren Mills Meyer Rice Schmidt Garza Daniels Ferguson Nichols
        Stephens Soto Weaver Gardner Payne Grant Dunn Kelley Spencer Hawkins Arnold Pierce Hansen Peters Santos Hart
        Bradley Knight Elliott Cunningham Duncan Armstrong Hudson Carroll Lane Riley Andrews Alvarado Ray Delgado Berry
        Perkins Hoffman Johnston Matthews Pena Richards Contreras Willis Carpenter Lawrence Sandoval Guerrero Chapman
        Rios Estrada Ortega Watkins Greene Nunez Wheeler Valdez Harper Burke Larson Santiago Maldonado Morrison
        Franklin Carlson Austin Dominguez Carr Lawson Jacobs Vega Lynch Singh Bishop Montgomery
        """,
        "Al Ash Ban Bar Bel Brad Bram Bur Cal Chat Cliff Crom Dal Den Dun Ed El Fair Far Glen Grim Hal Ham Har Haw Hol Kel "
        "Kirk Lang Lin Lock Mar Mel Mil Nor Oak Pem Pres Rad Ren Ros Rud Sel Shel Sher Stan Sut Thorn Wal Wes Whit Win Wood",
        "bury by combe dale den field ford ham ington ley man more shaw son stead ston ton well wick worth",
    ),
    streets=_words(
        "Street Avenue Road Court Lane Drive Way Place Square Terrace Trail Circle Plaza Ridge Point Station Heights "
        "Crossing Junction Landing Meadow Mount Shore Springs Valley Village"
    ),
    city_stems=_words(
        "Allison Amber Barton Carl Clinton Dana Edgar Elmer Ferris Gordon Harmon Hector Irving Jasper Kendra Lester Lloyd "
        "Marion Melvin Milton Nelson Orson Pierce Quincy Randall Rowan Shannon Stanton Sutter Travis Vernon Walden"
    ),
    city_ends=_words(
        "ville burgh bury berg borough chester fort furt haven land mouth port shire side stad town view"
    ),
)

PUBLIC = Words(
    first=_words(
        """
        Oskar Ingrid Matteo Freya Lars Chiara Henrik Saoirse Emil Noor Tomas Elif Anton Yasmin Rafael Signe Nikolai Amara
        Luca Astrid Pavel Leila Hugo Maeve Stefan Zofia Marek Tamsin Jonas Ines Viktor Niamh Andrei Petra Felix Liesl Kofi
        Rhiannon Mikkel Anouk Piotr Sunniva Dario Katarina Edvard Oriane Bastien Mirela Callum Isolde Tariq Greta Leon Aoife
        Milan Birgit Hamish Salome Ewan Daniela Ivo Hedda Janek Paloma Ruben Thora Sander Ottilie Bruno Zeynep Gareth Lidia
        Magnus Cosima Alasdair Ilse Kasper Rosalind Dmitri Tuva Fergus Marisol Arvid Bronwyn Jorge Elowen Osman Celeste
        Tobias Linnea Rory Agnieszka Enzo Solveig Hakan Delphine Nils Carys Adrien Mina Gustav Perpetua Iain Annika Lorenzo
        Ghislaine Wout Severine Declan Ulrike Ansel Morwenna Cedric Ludmila Baptiste Eira Konrad Zuzana Idris Vanja Raul
        Philippa Ottokar Nadine Florian Aisling Emre Clementine Joost Gwenllian Sven Marta Desmond Beatrix Olaf Tindra
        Padraig Josefine Rhys Selma Ludo Verena Anselm Hilde Cormac Eleni Didier Ragna Euan Imogen Falk Oona Gabor Sidsel
        Lennart Ariadne Murdo Pernille Yannick Roisin Zoltan Elspeth Bjorn Mathilde Ciaran Halina Jesper Valerija Alaric
        Karolina Timo Siobhan Radek Eulalie Haruki Mei Kenji Priya Arjun Ananya Rohan Sunita Vikram Meera Kwame Adaeze Chidi
        Ngozi Femi Zainab Malik Farah Samir Layla Omar Dalia Karim Salma Bilal Rania
        """
    ),
    last=_last(
        """
        Abernathy Achterberg Aldana Alfonsi Ambrosio Andersen Anstruther Appelman Aquino Ardagh Arkwright Asplund Auberon
        Babic Balint Barbosa Bartos Beaumont Beckers Bellamy Benedetti Bergman Bianchi Bielski Birkeland Blanchard Bogdan
        Bohm Bonnard Borgen Boucher Brandt Brennan Brouwer Buchanan Calloway Cameron Capaldi Cardoso Carmody Castellan
        Cavendish Chambers Chaudhry Cheng Christie Claesson Cochrane Conroy Corbett Costello Crichton Czerny Dahlberg
        Danjuma Debussy Delacroix Desai Devlin Dimitrov Doherty Donovan Dragan Dubois Duval Eastwick Ebner Egan Ekstrom
        Engel Eriksen Esposito Fairbairn Falk Faraday Farouk Faulkner Ferrari Fitzroy Fontaine Forsberg Fournier Fraser
        Friedrich Gallagher Garnier Gautier Gerber Giordano Goldberg Gorski Grabowski Greco Grieve Guerin Gupta Haas
        Haddad Halvorsen Hanssen Hartmann Heffernan Heikkinen Henriksen Herzog Hirsch Hoekstra Holub Horvat Hussain Ibsen
        Iyer Jansen Jankowski Jensen Joshi Jovanovic Jung Kaczmarek Kapoor Karlsen Kaufman Kavanagh Keane Keller Khalil
        Kinnear Kirsch Klein Koenig Kovac Kowalski Kramer Krause Kruger Kumar Lachance Lambert Larkin Laurent Lebedev
        Lefevre Leroux Lindqvist Lombardi Lorentz Lowell Lundgren Macleod Magnusson Mahoney Malone Mancini Marchetti
        Marchand Mazur Mbeki Meier Mercier Michaud Moreau Moretti Morozov Mukherjee Nakamura Napier Navarro Neumann Niemi
        Nilsson Nowak Nyberg Oberg Okafor Okonkwo Olafsen Osborne Ostrowski Ozturk Pappas Pascal Pavlov Pedersen Pelletier
        Petrov Piazza Pokorny Poulsen Prakash Quigley Quist Rahman Rasmussen Reinhardt Renard Ricci Rinaldi Rosenberg
        Rousseau Russo Ryder Saito Sandberg Santoro Sauer Schaefer Schneider Schreiber Sharma Silveira Sinclair Sobol
        Sorensen Stark Steiner Strand Suzuki Svensson Szabo Tanaka Tennant Thibault Tierney Toivonen Tremblay Urban
        Vaillant Valenti Varga Vasile Verhoeven Vidal Vogel Volkov Wagenaar Wallin Weber Winkler Wolff Yamada Yilmaz
        Zanetti Zielinski Zimmerman
        """,
        "Aber Bach Birk Bjork Brom Carn Dorn Ebers Feld Fjell Gold Gren Heid Hjort Inver Kron Lager Lund Moss Nord Ober "
        "Penn Rosen Schon Soder Stein Strom Tre Velde Weiss",
        "bach berger dahl garth gaard hof holt kamp lund mann nethy quist rath stad strand vik wald",
    ),
    streets=_words(
        "Row Mews Crescent Gardens Close Wharf Parade Hollow Yard Walk Embankment Arcade Steps Green Quay"
    ),
    city_stems=_words(
        "Ard Bally Brack Caer Castle Cold Crag Dun Elder Fen Glas Heath Inch Kil Lark Moor Nether Over Pen Raven Sal "
        "Strath Thistle Under Wether Yarrow"
    ),
    city_ends=_words(
        "brook cairn cliffe craig firth gate glen hithe kirk mere ness pool rigg thorpe tarn wold"
    ),
)
